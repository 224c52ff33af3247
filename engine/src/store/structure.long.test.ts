/** The histories of the quick tests beside this file, longer and more of them. */

import { expect, test } from 'vitest'
import { runModel } from '../testing/model.ts'
import { runStructure } from '../testing/structure-run.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))

test(`readers see each of many structural changes completely or not at all (VACANCY_SEED=${SEED})`, async () => {
  expect(await runStructure(SEED, { commands: 6_000, overlapped: 1_000, besideMarks: 150 })).toBe('')
}, 180_000)

test(`long histories are those of the model of plain objects (VACANCY_SEED=${SEED})`, () => {
  for (let i = 0; i < 6; i++) runModel(SEED + i, { properties: 30, segments: 3, rooms: 3, areas: 4, steps: 1500 })
  runModel(SEED, { properties: 1200, segments: 1, rooms: 1, areas: 90, steps: 9000 })
  runModel(SEED + 1, { properties: 600, segments: 2, rooms: 2, areas: 20, steps: 6000 })
})

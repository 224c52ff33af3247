import { describe, test } from 'vitest'
import { runModel } from '../testing/model.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

describe('the store against a model of plain objects', () => {
  test(`small tables, which have no bitmaps (VACANCY_SEED=${SEED})`, () => {
    for (let i = 0; i < 6; i++) runModel(SEED + i, { properties: 30, segments: 3, rooms: 3, areas: 4, steps: 1500 })
  })

  test(`tables large enough for bitmaps and growth (VACANCY_SEED=${SEED})`, () => {
    runModel(SEED, { properties: 1200, segments: 1, rooms: 1, areas: 90, steps: 9000 })
    runModel(SEED + 1, { properties: 600, segments: 2, rooms: 2, areas: 20, steps: 6000 })
  })
})

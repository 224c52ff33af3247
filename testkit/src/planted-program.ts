/** Loaded first by programs and threads with the environment of a planted defect (plant.ts). */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { type Planted, plant } from './plant.ts'

const { planted, marks } = JSON.parse(process.env['VACANCY_PLANTED'] ?? '') as { planted: Planted; marks?: string }
// Threads inherit the environment of their process, but not its arguments.
if (isMainThread) process.env['PLANTED_NODE'] = process.argv[process.argv.indexOf('--node-id') + 1] ?? ''
if (marks === undefined || existsSync(join(marks, process.env['PLANTED_NODE'] ?? ''))) plant(planted)

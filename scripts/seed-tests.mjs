// Loaded before every test file: applies VACANCY_SEED, such as the seed of a failure. Other random tests read it
// themselves.
import fc from 'fast-check'

const seed = process.env.VACANCY_SEED
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) })

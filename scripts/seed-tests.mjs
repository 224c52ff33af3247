// Before every test file: VACANCY_SEED takes a seed back that a failure printed; the other random tests read it themselves.
import fc from 'fast-check'

const seed = process.env.VACANCY_SEED
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) })

// A vitest reporter that counts tests, files that fail to load, and unhandled errors.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { failureLine } from './failure-line.mjs'

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, skipped: 0, failures: unhandledErrors.map((error) => failureLine('(no test)', error)) }
    const failed = (name, errors) => counts.failures.push(...errors.map((error) => failureLine(name, error)))
    for (const module of modules) {
      const file = path.relative(process.cwd(), module.moduleId)
      // A suite with failed hooks, or a file that does not load, may have no failed test.
      failed(file, module.errors())
      for (const suite of module.children.allSuites()) failed(`${file} > ${suite.fullName}`, suite.errors())
      for (const test of module.children.allTests()) {
        const { state, errors = [] } = test.result()
        if (state === 'failed') failed(`${file} > ${test.fullName}`, [errors[0]])
        else if (state === 'passed') counts.passed += 1
        else counts.skipped += 1
      }
    }
    if (process.env.VACANCY_TEST_COUNTS) writeFileSync(process.env.VACANCY_TEST_COUNTS, JSON.stringify(counts))
  }
}

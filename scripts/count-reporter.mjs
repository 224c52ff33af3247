// A vitest reporter that counts: tests, files that could not even be loaded, errors nobody caught.
import { writeFileSync } from 'node:fs'

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const module of modules) {
      // A suite that fails in its own hooks, or a file that does not load, may hold no failed test.
      counts.failed += module.errors().length
      for (const suite of module.children.allSuites()) counts.failed += suite.errors().length
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed' || state === 'failed') counts[state] += 1
        else counts.skipped += 1
      }
    }
    if (process.env.VACANCY_TEST_COUNTS) writeFileSync(process.env.VACANCY_TEST_COUNTS, JSON.stringify(counts))
  }
}

// A Playwright reporter that counts like count-reporter.mjs.
import { writeFileSync } from 'node:fs'
import { failureLine } from './failure-line.mjs'

export default class CountBrowserReporter {
  #errors = []
  #suite

  onBegin(_config, suite) {
    this.#suite = suite
  }

  onError(error) {
    this.#errors.push(failureLine('(no test)', error))
  }

  onEnd() {
    const file = process.env.VACANCY_TEST_COUNTS
    if (!file) return
    const counts = { passed: 0, skipped: 0, failures: [...this.#errors] }
    for (const test of this.#suite?.allTests() ?? []) {
      const outcome = test.outcome()
      if (outcome === 'expected') counts.passed++
      else if (outcome === 'skipped') counts.skipped++
      // A test that passed only after a retry counts as failed.
      else
        counts.failures.push(
          failureLine(test.titlePath().filter(Boolean).join(' > '), test.results.find(({ error }) => error)?.error),
        )
    }
    writeFileSync(file, JSON.stringify(counts))
  }

  printsToStdio() {
    return false
  }
}

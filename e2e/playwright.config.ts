import { defineConfig, devices } from '@playwright/test'
import { LAUNCH } from './src/browser.ts'

const SIMULATED = '**/end-states.spec.ts'

export default defineConfig({
  testDir: './src',
  outputDir: './test-results',
  // Each with one cluster for all of its tests, which change its leader and stop its nodes: a real one, and a simulated one
  // that takes next to nothing of the machine beside it.
  workers: 2,
  projects: [
    { name: 'real', testIgnore: SIMULATED, workers: 1 },
    { name: 'simulated', testMatch: SIMULATED, workers: 1 },
  ],
  // Real processes on machines of any speed: what must hold is waited for, and comes at once where it can.
  timeout: 150_000,
  expect: { timeout: 30_000 },
  reporter: [['list'], ['../scripts/count-browser-reporter.mjs']],
  use: {
    ...devices['Desktop Chrome'],
    viewport: { width: 1280, height: 800 },
    // A test that fails prints what its pages showed; `--trace on` records more, and costs each step time.
    screenshot: 'only-on-failure',
    launchOptions: LAUNCH,
  },
})

import { defineConfig, devices } from '@playwright/test'
import { LAUNCH } from './src/browser.ts'

const SIMULATED = [
  '**/clients.spec.ts',
  '**/end-states.spec.ts',
  '**/replace-voter.spec.ts',
  '**/tasks.spec.ts',
  '**/topology.spec.ts',
]
const PAGES = '**/accessibility.spec.ts'
const OUTAGES = '**/outages.spec.ts'
/** Belongs to every run (`npm test`). */
const EVERYDAY = '**/*.program.spec.ts'

export default defineConfig({
  testDir: './src',
  outputDir: './test-results',
  // Each project has one cluster for all of its tests, which change its leader and stop its nodes: a real one, and a
  // simulated one that needs few resources. When that has ended, all pages are checked on another real one.
  workers: 2,
  projects: [
    { name: 'everyday', testMatch: EVERYDAY, workers: 1 },
    { name: 'real', testIgnore: [...SIMULATED, PAGES, OUTAGES, EVERYDAY], workers: 1 },
    { name: 'simulated', testMatch: SIMULATED, workers: 1 },
    { name: 'pages', testMatch: PAGES, workers: 1 },
    { name: 'outages', testMatch: OUTAGES, workers: 1 },
  ],
  // Real processes on machines of any speed: tests wait for conditions, and continue as soon as they hold.
  timeout: 150_000,
  expect: { timeout: 30_000 },
  reporter: [['list'], ['../scripts/count-browser-reporter.mjs']],
  use: {
    ...devices['Desktop Chrome'],
    viewport: { width: 1280, height: 800 },
    // A failed test prints the content of its pages. `--trace on` records more and slows each step down.
    screenshot: 'only-on-failure',
    launchOptions: LAUNCH,
  },
})

import { defineConfig, devices } from '@playwright/test'
import { LAUNCH } from './src/browser.ts'

export default defineConfig({
  testDir: './src',
  outputDir: './test-results',
  // One cluster for all: tests change its leader and stop its nodes.
  workers: 1,
  timeout: 90_000,
  expect: { timeout: 15_000 },
  reporter: [['list'], ['../scripts/count-browser-reporter.mjs']],
  use: {
    ...devices['Desktop Chrome'],
    viewport: { width: 1280, height: 800 },
    trace: 'retain-on-failure',
    screenshot: 'only-on-failure',
    launchOptions: LAUNCH,
  },
})

import { defineConfig, devices } from '@playwright/test'

/** Found or installed by the launcher; '' leaves the choice to Playwright. */
const browser = process.env['CHROMIUM_PATH'] ?? ''

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
    launchOptions: {
      ...(browser !== '' && { executablePath: browser }),
      args: [
        '--disable-dev-shm-usage',
        '--disable-background-networking',
        // A browser of root has no sandbox.
        ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      ],
    },
  },
})

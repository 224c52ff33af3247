/** The Chromium of tests, screenshots and benchmarks. */

import { type Browser, chromium } from '@playwright/test'

/** Found or installed by the launcher; '' leaves the choice to Playwright. */
const path = process.env['CHROMIUM_PATH'] ?? ''

export const LAUNCH = {
  ...(path !== '' && { executablePath: path }),
  args: [
    '--disable-dev-shm-usage',
    '--disable-background-networking',
    // A browser of root has no sandbox.
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
  ],
}

export function openBrowser(): Promise<Browser> {
  return chromium.launch(LAUNCH)
}

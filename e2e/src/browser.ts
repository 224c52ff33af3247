/** The Chromium of tests, screenshots and benchmarks. */

import { type Browser, type BrowserContext, chromium } from '@playwright/test'

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

/** A browser with a profile on disk, as people have one: what it compiled for a page is kept for the next time. */
export function openProfile(baseURL: string, viewport: { width: number; height: number }): Promise<BrowserContext> {
  // '' is a new folder, which goes when it is closed.
  return chromium.launchPersistentContext('', { ...LAUNCH, baseURL, viewport })
}

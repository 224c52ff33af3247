/** The Chromium of tests, screenshots and benchmarks. */

import { type Browser, type BrowserContext, chromium } from '@playwright/test'

/** Found or installed by the launcher; '' leaves the choice to Playwright. */
const path = process.env['CHROMIUM_PATH'] ?? ''

export const LAUNCH = {
  ...(path !== '' && { executablePath: path }),
  args: [
    '--disable-dev-shm-usage',
    '--disable-background-networking',
    // Chromium cannot use its sandbox as root.
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
  ],
}

export function openBrowser(): Promise<Browser> {
  return chromium.launch(LAUNCH)
}

/** A browser with a profile on disk, which caches compiled code like the browser of a person. */
export function openProfile(baseURL: string, viewport: { width: number; height: number }): Promise<BrowserContext> {
  // '' is a new folder, which is removed when the browser is closed.
  return chromium.launchPersistentContext('', { ...LAUNCH, baseURL, viewport })
}

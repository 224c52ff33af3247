/** The Chromium of tests, screenshots and benchmarks. */

import { type Browser, type BrowserContext, chromium } from '@playwright/test'

/** Found or installed by the launcher; '' leaves the choice to Playwright. */
const path = process.env['CHROMIUM_PATH'] ?? ''

/**
 * Chromium takes the last list only, so this one has that of Playwright as far as tests depend on it. Each window would
 * load the popups of its address bar, which takes as long as a page of the console.
 */
const DISABLED_FEATURES = [
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
  ...['AimEnabled', 'AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades'],
  ...['HttpsFirstBalancedModeAutoEnable', 'LensOverlay', 'MediaRouter', 'NetworkTimeServiceQuerying'],
  ...['OptimizationHints', 'PaintHolding', 'PreconnectToSearch', 'ThirdPartyStoragePartitioning'],
]

export const LAUNCH = {
  ...(path !== '' && { executablePath: path }),
  args: [
    '--disable-dev-shm-usage',
    '--disable-background-networking',
    `--disable-features=${DISABLED_FEATURES.join()}`,
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

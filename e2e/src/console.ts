/** A browser that is signed in to a running stack under writes. The stack lives as long as the worker. */

import { type Browser, type BrowserContext, test as base, type Page } from '@playwright/test'
import { type Stack, startStack } from './stack.ts'
import { startWriter } from './writer.ts'

/** The stored session of a browser. */
export type State = Awaited<ReturnType<BrowserContext['storageState']>>

/** Prints the content of a page when its test fails, for logs without attachments. */
const SHOWN_CHARS_MAX = 6_000

/** A failed test prints the content of its pages. */
export const telling = base.extend<{ tellFailure: undefined }>({
  tellFailure: [
    async ({ context }, use, info) => {
      await use(undefined)
      if (info.status === info.expectedStatus) return
      const shown = async (page: Page) => {
        const content = await page.locator('body').ariaSnapshot({ timeout: 5_000 })
        return `${page.url()} showed:\n${content.slice(0, SHOWN_CHARS_MAX)}`
      }
      // An error, unlike output, is printed with the failure at the end.
      throw new Error((await Promise.all(context.pages().map(shown))).join('\n'))
    },
    { auto: true },
  ],
})

export const test = telling.extend<object, { stack: Stack; admin: State }>({
  stack: [
    async ({ browserName: _ }, use) => {
      const stack = await startStack()
      const writer = await startWriter(stack)
      await use(stack)
      await writer.stop()
      await stack.stop()
    },
    { scope: 'worker', timeout: 270_000 },
  ],
  admin: [
    async ({ browser, stack }, use) => {
      await use(await signedIn(browser, stack.link))
    },
    { scope: 'worker', timeout: 60_000 },
  ],
  baseURL: async ({ stack }, use) => use(stack.url),
  storageState: async ({ admin }, use) => use(admin),
})

export { expect } from '@playwright/test'

/** Opening a link does not redeem it; its button does. */
export async function signIn(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByRole('button', { name: /^Sign in/ }).click()
  await page.waitForURL((url) => !url.pathname.startsWith('/sign-in'))
}

/** Signs in with a link, which works once; tests share the resulting session. */
export async function signedIn(browser: Browser, link: string): Promise<State> {
  const context = await browser.newContext()
  await signIn(await context.newPage(), link)
  const state = await context.storageState()
  await context.close()
  return state
}

/** Waits until the page shows its first data. */
export async function ready(page: Page, id?: string): Promise<void> {
  const which = id === undefined ? '' : `[data-page="${id}"]`
  await page.locator(`main${which}[data-ready="true"]`).waitFor()
}

/** A browser that is signed in to a running stack; the stack lives as long as the worker. */

import { type BrowserContext, test as base, type Page } from '@playwright/test'
import { type Stack, startStack } from './stack.ts'

type State = Awaited<ReturnType<BrowserContext['storageState']>>

export const test = base.extend<object, { stack: Stack; admin: State }>({
  stack: [
    async ({ browserName: _ }, use) => {
      const stack = await startStack()
      await use(stack)
      await stack.stop()
    },
    { scope: 'worker', timeout: 180_000 },
  ],
  admin: [
    async ({ browser, stack }, use) => {
      const context = await browser.newContext()
      const page = await context.newPage()
      await signIn(page, stack.link)
      const state = await context.storageState()
      await context.close()
      await use(state)
    },
    { scope: 'worker', timeout: 60_000 },
  ],
  baseURL: async ({ stack }, use) => use(stack.url),
  storageState: async ({ admin }, use) => use(admin),
})

export { expect } from '@playwright/test'

/** Opening a link uses nothing up; its button does. */
export async function signIn(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByRole('button', { name: /^Sign in/ }).click()
  await page.waitForURL((url) => !url.pathname.startsWith('/sign-in'))
}

/** The page has drawn its first data. */
export async function ready(page: Page, id?: string): Promise<void> {
  const which = id === undefined ? '' : `[data-page="${id}"]`
  await page.locator(`main${which}[data-ready="true"]`).waitFor()
}

/** Signing in, and permissions. */

import type { Page } from '@playwright/test'
import { expect, ready, signIn, test } from './console.ts'

/** Adds a person through the API as the signed-in admin; the answer's link signs that person in. */
async function addPerson(page: Page, name: string, role: string): Promise<string> {
  const { csrf } = await (await page.request.get('/api/v1/me')).json()
  const answer = await page.request.post('/api/v1/people', { data: { name, role }, headers: { 'x-csrf': csrf } })
  expect(answer.status()).toBe(201)
  return (await answer.json()).link
}

test('without a session only the sign-in page is shown, and no data', async ({ browser, stack }) => {
  const context = await browser.newContext({ baseURL: stack.url, storageState: { cookies: [], origins: [] } })
  const page = await context.newPage()

  await page.goto('/shards/quickstart')

  await expect(page).toHaveURL(/\/sign-in/)
  expect((await page.request.get('/api/v1/summary')).status()).toBe(401)
  await context.close()
})

test('a link is redeemed once, by its button', async ({ browser, page, stack }) => {
  const link = await addPerson(page, 'vera', 'viewer')
  const first = await browser.newContext({ baseURL: stack.url, storageState: { cookies: [], origins: [] } })
  const second = await browser.newContext({ baseURL: stack.url, storageState: { cookies: [], origins: [] } })
  const [one, two] = [await first.newPage(), await second.newPage()]

  await one.goto(link)
  await one.reload()
  await signIn(one, link)
  await ready(one)
  // Opened while the page is already shown, as from the address bar: the page is not reloaded.
  await two.goto('/sign-in')
  await ready(two, 'sign-in')
  await two.goto(link)
  await two.getByRole('button', { name: /^Sign in/ }).click()

  await expect(two.getByRole('alert').first()).toBeVisible()
  await first.close()
  await second.close()
})

test('a viewer sees everything, with the reason why nothing can be changed', async ({ browser, page, stack }) => {
  const link = await addPerson(page, 'otto', 'viewer')
  const context = await browser.newContext({ baseURL: stack.url, storageState: { cookies: [], origins: [] } })
  const viewer = await context.newPage()
  await signIn(viewer, link)
  await viewer.goto('/shards/quickstart')
  await ready(viewer)

  const action = viewer.getByRole('button', { name: /^(Make leader|Transfer leadership|Promote)…/ }).first()
  await expect(action).toHaveAttribute('aria-disabled', 'true')
  const { csrf } = await (await viewer.request.get('/api/v1/me')).json()
  const refused = await viewer.request.post('/api/v1/operations', { data: { plan: 'x' }, headers: { 'x-csrf': csrf } })
  expect(refused.status()).toBe(403)
  await context.close()
})

test('when a session has ended, the page asks to sign in again and is kept', async ({ browser, page, stack }) => {
  const link = await addPerson(page, 'ida', 'operator')
  const context = await browser.newContext({ baseURL: stack.url, storageState: { cookies: [], origins: [] } })
  const tab = await context.newPage()
  await signIn(tab, link)
  await tab.goto('/shards/quickstart')
  await ready(tab)

  await context.clearCookies()
  // The page may find out by itself first; its dialog then covers the link.
  await tab.locator('a[href="/operations"]').first().dispatchEvent('click')

  await expect(tab.getByRole('dialog')).toContainText(/[Ss]ign in/)
  await context.close()
})

test('a console token signs in, shows its permissions, and revoking it ends the open page', async ({
  browser,
  page,
  stack,
}) => {
  const { csrf } = await (await page.request.get('/api/v1/me')).json()
  const headers = { 'x-csrf': csrf }
  const made = await page.request.post('/api/v1/tokens', { data: { name: 'night shift', role: 'client' }, headers })
  const { token, value } = await made.json()
  const context = await browser.newContext({ baseURL: stack.url, storageState: { cookies: [], origins: [] } })
  const tab = await context.newPage()

  await tab.goto('/sign-in?next=/shards')
  await tab.getByRole('button', { name: 'Use a console token instead' }).click()
  await tab.getByLabel('Console token').fill('vct_mistyped')
  await tab.keyboard.press('Enter')
  await expect(tab.getByText('The token is unknown, revoked or expired.')).toBeVisible()
  await tab.getByLabel('Console token').fill(value)
  await tab.keyboard.press('Enter')
  await ready(tab, 'shards')
  await tab.goto('/settings/profile')
  await ready(tab)
  await expect(tab.getByRole('main')).toContainText(/night shift.*viewer.*an API token/s)

  expect((await page.request.delete(`/api/v1/tokens/${token.id}`, { headers })).status()).toBe(204)
  await expect(tab.getByRole('dialog', { name: 'Your session has ended' })).toContainText('Console token')
  await context.close()
})

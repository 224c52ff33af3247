/** The slots of a rack are drawn by rack.css: its shapes are those of the icons. */

import { readFileSync } from 'node:fs'
import { NODE_STATES } from '@vacancy/shared/contract'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { ROLE_ICONS } from '../../ui/role-mark.tsx'
import { STATE_ICONS } from '../../ui/state-badge.tsx'

const CSS = readFileSync(new URL('./rack.css', import.meta.url), 'utf8')

/** An icon as an image that a style can name. */
function imageOf(name: IconName): string {
  const [, inside] = /<svg[^>]*>(.*)<\/svg>/.exec(renderToStaticMarkup(createElement(Icon, { name }))) ?? []
  const pen = "fill='none' stroke='%23000' stroke-width='1.5' stroke-linecap='round' stroke-linejoin='round'"
  const shape = inside
    ?.replaceAll('"', "'")
    .replaceAll(/<\/(path|rect|circle)>/g, '')
    .replaceAll("'>", "'/>")
  return `url("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' ${pen}>${shape}</svg>")`
}

test.each(Object.entries(ROLE_ICONS))('the role %s has its shape above', (role, icon) => {
  expect(CSS).toContain(`.slot[data-role="${role}"]::before {\n    --shape: ${imageOf(icon)};`)
})

test.each(NODE_STATES.filter((state) => state !== 'healthy'))('the state %s has its shape below', (state) => {
  expect(CSS).toContain(`.slot[data-state="${state}"]::after {\n    --shape: ${imageOf(STATE_ICONS[state])};`)
})

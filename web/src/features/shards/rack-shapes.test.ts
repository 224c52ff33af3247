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
const SIDE = 16
const STATES = NODE_STATES.filter((state) => state !== 'healthy')
const SHAPES = [...new Set([...Object.values(ROLE_ICONS), ...STATES.map((state) => STATE_ICONS[state])])]

/** What an icon draws, as it can stand in a style. */
function drawingOf(name: IconName): string {
  const [, inside = ''] = /<svg[^>]*>(.*)<\/svg>/.exec(renderToStaticMarkup(createElement(Icon, { name }))) ?? []
  return inside
    .replaceAll('"', "'")
    .replaceAll(/<\/(path|rect|circle)>/g, '')
    .replaceAll("'>", "'/>")
}

test('one image contains the icons of all roles and states, side by side', () => {
  const size = `viewBox='0 0 ${SIDE * SHAPES.length} ${SIDE}'`
  const pen = "fill='none' stroke='%23000' stroke-width='1.5' stroke-linecap='round' stroke-linejoin='round'"
  const drawn = SHAPES.map((name, at) => `<g transform='translate(${SIDE * at})'>${drawingOf(name)}</g>`).join('')

  expect(CSS).toContain(
    `url("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' ${size} ${pen}>${drawn}</svg>")`,
  )
  expect(CSS).toContain(`/ calc(14px * ${SHAPES.length}) 14px no-repeat`)
})

test.each(Object.entries(ROLE_ICONS))('the role %s has its shape above', (role, icon) => {
  expect(CSS).toContain(`.slot[data-role="${role}"]::before {\n    --shape: ${SHAPES.indexOf(icon)};`)
})

test.each(STATES)('the state %s has its shape below', (state) => {
  expect(CSS).toContain(`.slot[data-state="${state}"]::after {\n    --shape: ${SHAPES.indexOf(STATE_ICONS[state])};`)
})

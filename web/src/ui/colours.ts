/**
 * Resolves colour tokens under the theme of an element, for canvases. `var(--color-x)` itself reads as `light-dark(…)`;
 * only a property that uses it is resolved. All are set before the first is read, so styles are computed once.
 */
export function readColours(element: Element, tokens: readonly string[]): string[] {
  const probe = document.createElement('span')
  probe.hidden = true
  const parts = tokens.map((token) => {
    const part = document.createElement('span')
    part.style.color = `var(--color-${token})`
    return part
  })
  probe.append(...parts)
  element.append(probe)
  const colours = parts.map((part) => getComputedStyle(part).color)
  probe.remove()
  return colours
}

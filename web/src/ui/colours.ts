/**
 * Colours of tokens as they are under the theme of an element, for canvases: `var(--color-x)` itself reads as
 * `light-dark(…)`, only a property that uses it is resolved.
 */
export function readColours(element: Element, tokens: readonly string[]): string[] {
  const probe = document.createElement('span')
  probe.hidden = true
  element.append(probe)
  const style = getComputedStyle(probe)
  const colours = tokens.map((token) => {
    probe.style.color = `var(--color-${token})`
    return style.color
  })
  probe.remove()
  return colours
}

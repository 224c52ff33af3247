/** Terminal output of the quick starts. */

export function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

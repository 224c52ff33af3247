/** Whether an `accept-encoding` header allows it; `q=0` does not. */
export function accepts(acceptEncoding: string, encoding: string): boolean {
  return acceptEncoding.split(',').some((one) => {
    const [name, ...parameters] = one.split(';').map((part) => part.trim())
    return name === encoding && !parameters.some((part) => /^q=0(\.0*)?$/.test(part))
  })
}

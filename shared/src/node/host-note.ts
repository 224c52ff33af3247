/** What a program adds to its first lines when it listens on all addresses: other names are served only when they are allowed. */
export function hostNote(config: { readonly listenHost: string; readonly allowedHosts: readonly string[] }): string {
  const isOpen = config.listenHost === '0.0.0.0' || config.listenHost === '::'
  if (!isOpen || config.allowedHosts.length > 0) return ''
  return 'host names: none; requests to another name than an address of this machine are refused, see allowed_hosts\n'
}

/** Texts of requests, of the session and of missing sources. Every page loads them. */

export const api = {
  noResponse: {
    title: 'No response',
    detail: 'The control plane did not respond.',
    hint: 'Check the network. The console reconnects automatically.',
  },
  proxyError: (status: number, statusText: string) =>
    `A proxy in front of the control plane returned ${`${status} ${statusText}`.trim()}.`,
  proxyHint: 'Check the log of the reverse proxy.',
}

export const missing = {
  and: ' and ',
  node: 'node',
  nodesOf: (missing: number, nodes: string) => `${missing} of ${nodes}`,
  otherSource: 'other source',
  source: 'source',
  didNotRespond: (sources: string) => `${sources} did not respond`,
}

export const submit = { tooManyAttempts: 'Too many attempts. Wait a moment, then try again.' }

export const session = {
  disconnected: 'Disconnected from the control plane',
  needsRole: (role: string) => `Needs the ${role} role`,
  past: 'Viewing the past. Go back to now first',
  paused: 'Live updates are paused. Resume them first',
  notSaved: (reason: string) => `Not saved: ${reason}`,
  signOutFailed: (reason: string) => `Could not sign out: ${reason}`,
}

/** Texts of the panel of live updates, which loads when it opens. */

export const livePanel = {
  controlPlane: 'Control plane',
  noMessage: 'no message yet',
  cluster: 'Cluster state',
  notLoaded: 'not loaded yet',
  responding: 'Responding nodes',
  respondingOf: (responding: number, nodes: string) => `${responding} of ${nodes}`,
  resume: 'Resume',
  pause: 'Pause',
  past: 'View the past',
  pastLoading: 'Loading what was recorded.',
  nothingRecorded: 'Nothing is recorded yet. The state of the cluster is recorded once a minute.',
  recordedFrom: (time: string) =>
    `The past can be viewed from ${time} UTC. Nothing was recorded in the minutes before.`,
  reconnect: 'Reconnect',
  hint: 'Ages count from the time of the report, by the clock of this browser. Pausing freezes the display; changes are still received.',
  disconnectedFor: (time: string) => `Disconnected for ${time}.`,
}

/** Nodes, folders and connections of the tests of one file: what a test began ends with it, the last first. */

import {
  closeClient,
  type NodeProcess,
  type NodeRun,
  openClient,
  removeFolder,
  startNodeProcess,
  temporaryFolder,
  type WireClient,
} from '@vacancy/testkit/node'
import { afterEach } from 'vitest'

export type NodesOfTest = {
  /** Registers cleanup for the end of the test. */
  readonly cleanUp: (() => unknown)[]
  folderOfTest(): string
  start(run: NodeRun): Promise<NodeProcess>
  connectTo(node: NodeProcess, codecs?: readonly string[]): Promise<WireClient>
}

/** Called once, at the top of a file of tests. */
export function nodesOfTest(): NodesOfTest {
  const cleanUp: (() => unknown)[] = []
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step()
  })
  return {
    cleanUp,
    folderOfTest() {
      const folder = temporaryFolder()
      cleanUp.push(() => removeFolder(folder))
      return folder
    },
    async start(run) {
      const node = await startNodeProcess(run)
      cleanUp.push(() => node.kill())
      return node
    },
    async connectTo(node, codecs) {
      const client = await openClient(node, codecs ? { codecs } : {})
      cleanUp.push(() => closeClient(client))
      return client
    },
  }
}

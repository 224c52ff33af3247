import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import house from './package.json' with { type: 'json' }

/** Tests start real processes and share the cores with each other: generous time, few workers. */
const limits = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  setupFiles: [fileURLToPath(import.meta.resolve('./scripts/seed-tests.mjs'))],
}

const project = (name: string) => ({
  test: { name, root: `./${name}`, include: ['{src,sim,chaos}/**/*.test.ts'], ...limits },
})

export default defineConfig({
  test: {
    // Much of their time they wait for processes: three keep two cores busy.
    maxWorkers: 3,
    projects: [
      ...house.workspaces.map(project),
      { test: { name: 'scripts', root: './scripts', include: ['*.test.mjs'], ...limits } },
    ],
  },
})

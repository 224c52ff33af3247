import { defineConfig } from 'vitest/config'

const project = (name: string) => ({ test: { name, root: `./${name}`, include: ['src/**/*.test.ts'] } })

export default defineConfig({
  test: { projects: ['shared', 'engine', 'client', 'bench', 'quickstart'].map(project) },
})

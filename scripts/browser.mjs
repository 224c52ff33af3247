// Finds a Chromium for the browser tests, or installs one: Debian's package if permitted, else Playwright's own. Plain
// JavaScript without dependencies.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import path from 'node:path'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** @returns the path of a Chromium on this machine; undefined when there is none */
function findBrowser(env = process.env) {
  if (env.CHROMIUM_PATH) return env.CHROMIUM_PATH
  const folders = (env.PATH ?? '').split(path.delimiter)
  return NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name))).find(isExecutable)
}

/**
 * The same, and installs one when there is none.
 *
 * @param node the pinned Node, which runs Playwright
 * @returns `path` of the browser, or `fix`: one sentence with what to install
 */
export function ensureBrowser(root, node, say) {
  const found = findBrowser()
  if (found) return { path: found }
  if (process.getuid?.() === 0 && isExecutable('/usr/bin/apt-get')) {
    say('no Chromium found: installing the package of Debian …')
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    const apt = (...args) =>
      spawnSync('apt-get', ['-qq', '-y', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
    const install = ['install', '--no-install-recommends', 'chromium']
    if (apt(...install).status !== 0 && apt('update').status === 0) apt(...install)
    const installed = findBrowser()
    if (installed) return { path: installed }
  }
  say("no Chromium found: downloading Playwright's own …")
  const cli = path.join(root, 'node_modules/@playwright/test/cli.js')
  const { status } = spawnSync(node, [cli, 'install', 'chromium'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  // Playwright finds its own browser.
  if (status === 0) return { path: '' }
  return {
    fix: 'the browser tests need a Chromium: install one (apt-get install chromium) or set CHROMIUM_PATH to it.',
  }
}

function isExecutable(file) {
  if (!existsSync(file)) return false
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

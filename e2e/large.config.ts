import { defineConfig } from '@playwright/test'
import usual from './playwright.config.ts'

/** What takes minutes and gigabytes, and so is run when it is asked for (`npm run e2e:large`). */
export default defineConfig({ ...usual, testMatch: '*.large.ts' })

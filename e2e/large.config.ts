import { defineConfig } from '@playwright/test'
import usual from './playwright.config.ts'

/** Tests that need minutes and gigabytes, run only on request (`npm run console -- large`). */
export default defineConfig({ ...usual, testMatch: '*.large.ts' })

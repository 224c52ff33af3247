export { AppearancePage as default } from '../../../../features/settings/appearance-page.tsx'

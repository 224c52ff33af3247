export { EnvironmentPage as default } from '../../../../features/settings/environment-page.tsx'

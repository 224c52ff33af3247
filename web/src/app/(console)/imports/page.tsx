export { ImportsPage as default } from '../../../features/imports/imports-page.tsx'

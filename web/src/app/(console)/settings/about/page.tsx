export { AboutPage as default } from '../../../../features/settings/about-page.tsx'

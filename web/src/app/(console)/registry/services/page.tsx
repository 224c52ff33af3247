export { ServicesPage as default } from '../../../../features/registry/services-page.tsx'

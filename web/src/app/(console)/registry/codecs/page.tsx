export { CodecsPage as default } from '../../../../features/registry/codecs-page.tsx'

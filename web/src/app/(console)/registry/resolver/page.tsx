export { ResolverPage as default } from '../../../../features/registry/resolver-page.tsx'

export { SignInPage as default } from '../../features/session/sign-in-page.tsx'

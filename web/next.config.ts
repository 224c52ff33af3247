import type { NextConfig } from 'next'

// No outside request of any kind, from the build neither (docs/design/control-plane.md#access).
process.env['NEXT_TELEMETRY_DISABLED'] = '1'

const config: NextConfig = {
  // Types of the contract, and the few pure functions of it that browsers run, are TypeScript source.
  transpilePackages: ['@vacancy/shared'],
  images: { unoptimized: true },
  poweredByHeader: false,
  reactStrictMode: true,
  // Without it hot reload is refused when the page is opened by address.
  allowedDevOrigins: ['127.0.0.1'],
  devIndicators: false,
}

export default config

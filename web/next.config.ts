import type { NextConfig } from 'next'

const config: NextConfig = {
  // Types of the contract, and the few pure functions of it that browsers run, are TypeScript source.
  transpilePackages: ['@vacancy/shared'],
  images: { unoptimized: true },
  poweredByHeader: false,
  // The control plane compresses or a reverse proxy does; twice would cost the same core again.
  reactStrictMode: true,
  // Without it hot reload is refused when the page is opened by address.
  allowedDevOrigins: ['127.0.0.1'],
  devIndicators: false,
}

export default config

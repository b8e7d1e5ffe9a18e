// The certified oidc-provider, with people and keys from files: what a test writes there counts from then on.
import { readFileSync } from 'node:fs';

const [modules, folder, address] = process.argv.slice(2);
const { Provider } = await import(`${modules}/oidc-provider/lib/index.js`);
const read = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));

const provider = new Provider(address, {
  clients: [read('client')],
  jwks: read('keys'),
  claims: { profile: ['preferred_username'], email: ['email', 'email_verified'], groups: ['groups', '_claim_names', '_claim_sources'] },
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'HS256'] },
  pkce: { required: () => true },
  // What a forge says about a CI job, for whom the job asks.
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, audience) => ({ audience, scope: '', accessTokenFormat: 'jwt', accessTokenTTL: 300 }),
    },
  },
  extraTokenClaims: () => read('job'),
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...read('people')[id] }) }),
});
// Its pages ask for a font elsewhere; these tests ask nobody.
provider.use(async (ctx, next) => {
  await next();
  if (typeof ctx.body === 'string') ctx.body = ctx.body.replace(/@import url[^;]*;/, '');
});
provider.listen(Number(new URL(address).port), '127.0.0.1', () => console.log('listening'));

// The certified oidc-provider, with people and keys from files: what a test writes there counts from then on.
import { readFileSync } from 'node:fs';

const [modules, folder, port] = process.argv.slice(2);
const { Provider } = await import(`${modules}/oidc-provider/lib/index.js`);
const read = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [read('client')],
  jwks: read('keys'),
  claims: { profile: ['preferred_username'], email: ['email', 'email_verified'], groups: ['groups', '_claim_names', '_claim_sources'] },
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'HS256'] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...read('people')[id] }) }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));

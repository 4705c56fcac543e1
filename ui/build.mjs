// Builds the page into the folder of the package that the server serves, or into the folder that is given.
import { build } from 'esbuild';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, '../service/api/static');

await mkdir(target, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { page: 'src/main.tsx', 'page-style': 'src/style.css' },
  outdir: target,
  bundle: true,
  format: 'esm',
  target: ['chrome110', 'firefox110', 'safari16.4'],
  minify: true,
  legalComments: 'inline',
  charset: 'utf8',
  logLevel: 'warning',
});
for (const name of ['index.html', 'icon.svg']) {
  await copyFile(join(here, 'src', name), join(target, name));
}

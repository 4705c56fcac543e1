/** The colours of the page now, light or dark. */
import { useEffect, useState } from 'preact/hooks';
import { themeOf, type Theme } from '../map/colours';

export function useTheme(): Theme {
  const [theme, setTheme] = useState(() => themeOf(document.documentElement));
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const changed = (): void => setTheme(themeOf(document.documentElement));
    dark.addEventListener('change', changed);
    changed();
    return () => dark.removeEventListener('change', changed);
  }, []);
  return theme;
}

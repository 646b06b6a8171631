// The palette: everything by name.
export function Palette() {
  return null;
}

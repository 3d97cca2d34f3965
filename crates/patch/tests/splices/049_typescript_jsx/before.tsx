export function App(): JSX.Element {
  return <div className="a">x</div>;
}

export const B = () => <b />;

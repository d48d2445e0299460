export function AgentSpinner({ text }: Props) {
  const [copied, setCopied] = useState(false);
  const [frame, setFrame] = useState(0);
  useEffect(() => {
    const id = setInterval(() => setFrame((n) => n + 1), 80);
    return () => clearInterval(id);
  }, []);
  const copy = () => {
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return <button onClick={copy}>{copied ? "ok" : text[frame]}</button>;
}

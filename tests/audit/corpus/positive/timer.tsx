export function AgentPanel({ messages }: Props) {
  const [status, setStatus] = useState("running");
  useEffect(() => {
    const timer = setTimeout(() => setStatus("done"), 8000); // expect: timeout
    return () => clearTimeout(timer);
  }, [messages]);
  return <Badge text={status} />;
}

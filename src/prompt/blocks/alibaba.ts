// Alibaba's API reports one fixed model name whatever was asked for.

export function alibabaModel(model: string): string {
  const short = model.slice(model.lastIndexOf("/") + 1);
  return `You are the model ${short} (exact model id: ${model}). Answer questions about which model you are from this line, not from any model name that the API returns.`;
}

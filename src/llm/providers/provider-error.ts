export type ProviderErrorCode =
  | "invalid_provider"
  | "no_provider_configured"
  | "missing_key"
  | "login_required"
  | "missing_base_url"
  | "invalid_base_url"
  | "invalid_api_mode"
  | "no_model_configured"
  | "key_host_mismatch";

/** A provider that cannot be used as things stand, in words for the user: what, where, what to do. */
export class ProviderError extends Error {
  override name = "ProviderError";
  readonly code: ProviderErrorCode;
  constructor(code: ProviderErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

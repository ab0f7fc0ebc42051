// Verifiers from npm, each asked whether it takes a delivery: vendors' own, but for those that say otherwise.
//
// A line of JSON comes in for each delivery: {sender, secret, url, headers (lower case), body (base64), keys (by URL)}, and one goes
// out: {taken} or {refused: why}. `secret` is what the receiver knows. Run by tests/vendors/test_npm.py in the
// directory where the packages are installed (`make vendors`).

import {createRequire, register} from "node:module"
import {createSecretKey} from "node:crypto"
import {createInterface} from "node:readline"
import {Readable} from "node:stream"
import {pathToFileURL} from "node:url"

const require = createRequire(process.cwd() + "/")
const json = (sent) => JSON.parse(sent.text)

const VERIFIERS = {
  adyen: ({secret, ...sent}) => {
    const {hmacValidator: Validator} = require("@adyen/api-library")
    const item = json(sent).notificationItems?.[0].NotificationRequestItem
    if (item) return new Validator().validateHMAC(item, secret)
    return new Validator().validateHMACSignature(secret, sent.headers.hmacsignature, sent.text)
  },
  amazon_sns: (sent) => new Promise((resolve, reject) => {
    const Validator = require("sns-validator")
    const validator = new Validator(/^sns\.[a-z0-9-]+\.amazonaws\.com$/u)
    validator.validate(json(sent), (error, said) => error ? reject(error) : resolve(said))
  }),
  anthropic_managed_agents: async ({secret, ...sent}) => {
    const {default: Anthropic} = await import("@anthropic-ai/sdk")
    return new Anthropic({apiKey: "key"}).beta.webhooks.unwrap(sent.text, {headers: sent.headers, key: secret})
  },
  box: ({secret, ...sent}) => {
    const {WebhooksManager} = require("box-node-sdk/lib/managers/webhooks")
    return WebhooksManager.validateMessage(sent.text, sent.headers, secret)
  },
  braintree: async ({secret, ...sent}) => {
    const braintree = require("braintree")
    const [publicKey, privateKey] = secret.split(":")
    const environment = braintree.Environment.Sandbox
    const gateway = new braintree.BraintreeGateway({environment, merchantId: "m", publicKey, privateKey})
    const form = new URLSearchParams(sent.text)
    return gateway.webhookNotification.parse(form.get("bt_signature"), form.get("bt_payload"))
  },
  clerk: async ({secret, ...sent}) => {
    const {verifyWebhook} = require("@clerk/backend/webhooks")
    return verifyWebhook(asRequest(sent), {signingSecret: secret})
  },
  cloudinary: ({secret, ...sent}) => {
    const cloudinary = require("cloudinary").v2
    cloudinary.config({api_secret: secret})
    const {"x-cld-timestamp": time, "x-cld-signature": signature} = sent.headers
    return cloudinary.utils.verifyNotificationSignature(sent.text, Number(time), signature)
  },
  // Of Hook0, by which Coinbase sends; Coinbase has none.
  coinbase_cdp: ({secret, ...sent}) => {
    const {verifyWebhookSignature} = require("hook0-client")
    const headers = new Headers(sent.headers)
    return verifyWebhookSignature(headers.get("x-hook0-signature"), sent.body, headers, secret, 300) ?? true
  },
  coinbase_commerce: ({secret, ...sent}) => {
    const {Webhook} = require("coinbase-commerce-node")
    return Webhook.verifyEventBody(sent.text, sent.headers["x-cc-webhook-signature"], secret)
  },
  contentful: ({secret, ...sent}) => {
    const {verifyRequest} = require("@contentful/node-apps-toolkit")
    const {pathname, search} = new URL(sent.url)
    return verifyRequest(secret, {...sent, path: pathname + search, method: "POST", body: sent.text}, 300)
  },
  discord: async ({secret, ...sent}) => {
    const {verifyKey} = require("discord-interactions")
    const {"x-signature-ed25519": signature, "x-signature-timestamp": time} = sent.headers
    return verifyKey(sent.body, signature, time, secret)
  },
  dropbox_sign: async ({secret, ...sent}) => {
    const {EventCallbackHelper, EventCallbackRequest} = require("@dropbox/sign")
    const said = JSON.parse((await asRequest(sent).formData()).get("json"))
    return EventCallbackHelper.isValid(secret, EventCallbackRequest.init(said))
  },
  ebay: async ({secret, ...sent}) => {
    const client = require("event-notification-nodejs-sdk/lib/client")
    client.getPublicKey = async () => ({key: secret.slice(secret.indexOf(":") + 1)})
    const {validateSignature} = require("event-notification-nodejs-sdk/lib/validator")
    return validateSignature(json(sent), sent.headers["x-ebay-signature"], {})
  },
  easypost: ({secret, ...sent}) => {
    const EasyPost = require("@easypost/api")
    return new EasyPost("key").Utils.validateWebhook(sent.body, sent.headers, secret)
  },
  elevenlabs: async ({secret, ...sent}) => {
    const {ElevenLabsClient} = require("@elevenlabs/elevenlabs-js")
    const {webhooks} = new ElevenLabsClient({apiKey: "key"})
    return webhooks.constructEvent(sent.text, sent.headers["elevenlabs-signature"], secret)
  },
  finch: ({secret, ...sent}) => {
    const {default: Finch} = require("@tryfinch/finch-api")
    return new Finch({clientId: "c", clientSecret: "s"}).webhooks.unwrap(sent.text, sent.headers, secret)
  },
  github: async ({secret, ...sent}) => {
    const {Webhooks} = await import("@octokit/webhooks")
    const {"x-github-delivery": id, "x-github-event": name, "x-hub-signature-256": signature} = sent.headers
    await new Webhooks({secret}).verifyAndReceive({id, name, signature, payload: sent.text})
    return true
  },
  gocardless: ({secret, ...sent}) => {
    const {parse} = require("gocardless-nodejs/webhooks")
    return parse(sent.body, secret, sent.headers["webhook-signature"])
  },
  hookdeck: async ({secret, ...sent}) => {
    const {verifyWebhookSignature} = require("@hookdeck/sdk/webhooks/helpers")
    const config = {checkSourceVerification: true}
    const said = await verifyWebhookSignature({...sent, rawBody: sent.text, signingSecret: secret, config})
    return said.isValidSignature && said.isSourceVerified !== false
  },
  hubspot: ({secret, ...sent}) => {
    const {Signature} = require("@hubspot/api-client")
    return Signature.isValid({
      signatureVersion: "v3", signature: sent.headers["x-hubspot-signature-v3"], clientSecret: secret,
      requestBody: sent.text, url: sent.url, method: "POST",
      timestamp: Number(sent.headers["x-hubspot-request-timestamp"]),
    })
  },
  hygraph: ({secret, ...sent}) => {
    const {verifyWebhookSignature} = require("@hygraph/utils")
    return verifyWebhookSignature({rawPayload: sent.text, signature: sent.headers["gcms-signature"], secret})
  },
  kontent_ai: ({secret, ...sent}) => {
    const {signatureHelper} = require("@kontent-ai/webhook-helper")
    const signature = sent.headers["x-kontent-ai-signature"]
    return signatureHelper.isValidSignatureFromString(sent.text, secret, signature)
  },
  line: async ({secret, ...sent}) => {
    const {validateSignature} = require("@line/bot-sdk")
    return validateSignature(sent.body, secret, sent.headers["x-line-signature"])
  },
  linear: ({secret, ...sent}) => {
    const {LinearWebhookClient} = require("@linear/sdk/webhooks")
    const {"linear-signature": signature, "linear-timestamp": time} = sent.headers
    return new LinearWebhookClient(secret).verify(sent.body, signature, Number(time))
  },
  lithic: ({secret, ...sent}) => {
    const {default: Lithic} = require("lithic")
    return new Lithic({apiKey: "key"}).webhooks.unwrap?.(sent.text, sent.headers, secret) ?? true
  },
  liveblocks: ({secret, ...sent}) => {
    const {WebhookHandler} = require("@liveblocks/node")
    return new WebhookHandler(secret).verifyRequest({headers: sent.headers, rawBody: sent.text})
  },
  livekit: async ({secret, ...sent}) => {
    const {WebhookReceiver} = require("livekit-server-sdk")
    const {api_key: key, api_secret: own} = JSON.parse(secret)
    return new WebhookReceiver(key, own).receive(sent.text, sent.headers.authorization)
  },
  // Nobody's at MailChannels.
  mailchannels: async (sent) => {
    const {Webhooks} = await import("mailchannels-sdk")
    return Webhooks.verify({payload: sent.text, headers: sent.headers, publicKey: JSON.parse(fetchable(sent)).key})
  },
  mercado_pago: ({secret, ...sent}) => {
    const {WebhookSignatureValidator} = require("mercadopago")
    const [{"x-signature": signature, "x-request-id": request}, {searchParams}] = [sent.headers, new URL(sent.url)]
    WebhookSignatureValidator.validate({
      xSignature: signature, xRequestId: request, dataId: searchParams.get("data.id"), secret,
    })
    return true
  },
  messagebird: async ({secret, ...sent}) => {
    const {verify} = require("messagebird/lib/webhook-signature-jwt")
    await verify(sent.url, sent.body, sent.headers["messagebird-signature-jwt"], createSecretKey(secret))
    return true
  },
  modern_treasury: ({secret, ...sent}) => {
    const {default: ModernTreasury} = require("modern-treasury")
    const {webhooks} = new ModernTreasury({apiKey: "key", organizationID: "o"})
    return webhooks.validateSignature(sent.text, sent.headers, {key: secret})
  },
  mux: async ({secret, ...sent}) => {
    const {default: Mux} = require("@mux/mux-node")
    return new Mux({tokenId: "t", tokenSecret: "s"}).webhooks.unwrap(sent.text, sent.headers, secret)
  },
  notion: async ({secret, ...sent}) => {
    const {verifyWebhookSignature} = require("@notionhq/client")
    const signature = sent.headers["x-notion-signature"]
    return verifyWebhookSignature({body: sent.text, signature, verificationToken: secret})
  },
  onfido: ({secret, ...sent}) => {
    const {WebhookEventVerifier} = require("@onfido/api")
    return new WebhookEventVerifier(secret).readPayload(sent.body, sent.headers["x-sha2-signature"])
  },
  openai: async ({secret, ...sent}) => {
    const {default: OpenAI} = require("openai")
    return new OpenAI({apiKey: "key"}).webhooks.unwrap(sent.text, sent.headers, secret)
  },
  paddle_billing: async ({secret, ...sent}) => {
    const {Paddle} = require("@paddle/paddle-node-sdk")
    return new Paddle("key").webhooks.unmarshal(sent.text, secret, sent.headers["paddle-signature"])
  },
  plivo: ({secret, ...sent}) => {
    const plivo = require("plivo")
    const {"x-plivo-signature-v3": signature, "x-plivo-signature-v3-nonce": nonce} = sent.headers
    const form = Object.fromEntries(new URLSearchParams(sent.text))
    return plivo.validateV3Signature("POST", sent.url, nonce, secret, signature, form)
  },
  polar: ({secret, ...sent}) => {
    const {validateEvent, WebhookVerificationError} = require("@polar-sh/sdk/webhooks")
    try {
      return validateEvent(sent.body, sent.headers, secret)
    } catch (error) {
      // Verified; what it can't parse is a type of event that this version does not know all of.
      if (error instanceof WebhookVerificationError) throw error
      return true
    }
  },
  pusher: ({secret, ...sent}) => {
    const Pusher = require("pusher")
    const said = JSON.parse(secret)
    const client = new Pusher({appId: "1", key: said.key, secret: said.secret})
    return client.webhook({headers: sent.headers, rawBody: sent.text}).isValid()
  },
  razorpay: ({secret, ...sent}) => {
    const Razorpay = require("razorpay")
    return Razorpay.validateWebhookSignature(sent.text, sent.headers["x-razorpay-signature"], secret)
  },
  replicate: async ({secret, ...sent}) => {
    const {validateWebhook} = require("replicate")
    const {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature} = sent.headers
    return validateWebhook({id, timestamp, signature, body: sent.text, secret})
  },
  resend: ({secret, ...sent}) => {
    const {Resend} = require("resend")
    const {"svix-id": id, "svix-timestamp": timestamp, "svix-signature": signature} = sent.headers
    const said = {payload: sent.text, headers: {id, timestamp, signature}, webhookSecret: secret}
    return new Resend("re_key").webhooks.verify(said)
  },
  retell: async ({secret, ...sent}) => {
    const {verify} = require("retell-sdk/lib/webhook_auth")
    return verify(sent.text, secret, sent.headers["x-retell-signature"])
  },
  sanity: async ({secret, ...sent}) => {
    const {isValidSignature} = require("@sanity/webhook")
    return isValidSignature(sent.text, sent.headers["sanity-webhook-signature"], secret)
  },
  shopify: async ({secret, ...sent}) => {
    await import("@shopify/shopify-api/adapters/node")
    const {ApiVersion, shopifyApi} = await import("@shopify/shopify-api")
    const shopify = shopifyApi({
      apiKey: "key", apiSecretKey: secret, hostName: "in.example", isEmbeddedApp: false,
      apiVersion: Object.values(ApiVersion).at(-1), logger: {log: () => {}},
    })
    const rawRequest = {method: "POST", url: new URL(sent.url).pathname, headers: sent.headers}
    const said = await shopify.webhooks.validate({rawBody: sent.text, rawRequest, rawResponse: {}})
    if (!said.valid) throw new Error(JSON.stringify(said))
    return true
  },
  slack: ({secret, ...sent}) => {
    const {verifySlackRequest} = require("@slack/bolt")
    verifySlackRequest({signingSecret: secret, body: sent.text, headers: sent.headers})
    return true
  },
  square: async ({secret, ...sent}) => {
    const {WebhooksHelper} = require("square")
    const signatureHeader = sent.headers["x-square-hmacsha256-signature"]
    return WebhooksHelper.verifySignature({
      requestBody: sent.text, signatureHeader, signatureKey: secret, notificationUrl: sent.url,
    })
  },
  standard_webhooks: ({secret, ...sent}) => {
    const {Webhook} = require("standardwebhooks")
    return new Webhook(secret).verify(sent.text, sent.headers)
  },
  stream: ({secret, ...sent}) => {
    const {StreamChat} = require("stream-chat")
    return new StreamChat("key", secret).verifyWebhook(sent.text, sent.headers["x-signature"])
  },
  stripe: ({secret, ...sent}) => {
    const Stripe = require("stripe")
    return new Stripe("sk_test").webhooks.constructEvent(sent.body, sent.headers["stripe-signature"], secret)
  },
  svix: ({secret, ...sent}) => {
    const {Webhook} = require("svix")
    return new Webhook(secret).verify(sent.text, sent.headers)
  },
  telnyx: async ({secret, ...sent}) => {
    const {default: Telnyx} = require("telnyx")
    const {webhooks} = new Telnyx({apiKey: "key", publicKey: secret})
    return webhooks.unwrap(sent.text, {headers: sent.headers, key: secret})
  },
  twilio: ({secret, ...sent}) => {
    const twilio = require("twilio")
    const [signature, form] = [sent.headers["x-twilio-signature"], new URLSearchParams(sent.text)]
    if (sent.url.includes("bodySHA256=")) return twilio.validateRequestWithBody(secret, signature, sent.url, sent.text)
    return twilio.validateRequest(secret, signature, sent.url, Object.fromEntries(form))
  },
  twilio_sendgrid_events: ({secret, ...sent}) => {
    const {EventWebhook} = require("@sendgrid/eventwebhook")
    const [verifier, head] = [new EventWebhook(), "x-twilio-email-event-webhook"]
    const {[`${head}-signature`]: signature, [`${head}-timestamp`]: time} = sent.headers
    return verifier.verifySignature(verifier.convertPublicKeyToECDSA(secret), sent.body, signature, time)
  },
  upstash_qstash: async ({secret, ...sent}) => {
    const {Receiver} = require("@upstash/qstash")
    const receiver = new Receiver({currentSigningKey: secret, nextSigningKey: secret})
    return receiver.verify({signature: sent.headers["upstash-signature"], body: sent.text, url: sent.url})
  },
  vonage: ({secret, ...sent}) => {
    const {verifySignature} = require("@vonage/jwt")
    return verifySignature(sent.headers.authorization.replace("Bearer ", ""), secret)
  },
  webflow: async ({secret, ...sent}) => {
    const {WebflowClient} = require("webflow-api")
    const {webhooks} = new WebflowClient({accessToken: "token"})
    return webhooks.verifySignature({headers: sent.headers, body: sent.text, secret})
  },
  workos: async ({secret, ...sent}) => {
    const {WorkOS} = require("@workos-inc/node")
    const {webhooks} = new WorkOS("key")
    return webhooks.constructEvent({payload: json(sent), sigHeader: sent.headers["workos-signature"], secret})
  },
  wix: async ({secret, ...sent}) => {
    const {AppStrategy, createClient} = await import("@wix/sdk")
    const client = createClient({auth: AppStrategy({appId: "app", publicKey: secret})})
    return client.webhooks.process(sent.text)
  },
  worldline_connect: async ({secret, ...sent}) => {
    const {newSignatureValidator} = require("connect-sdk-nodejs/lib/webhooks/validation")
    const [id, key] = [secret.slice(0, secret.indexOf(":")), secret.slice(secret.indexOf(":") + 1)]
    const store = {getSecretKey: async (asked) => asked === id ? key : Promise.reject(new Error("no such key"))}
    await newSignatureValidator(store).validate(sent.body, sent.headers)
    return true
  },
}

// Others' code: Tern, which is nobody's vendor.
const OF_TERN = {
  fal_ai: "falai", grafana: "grafana", lemon_squeezy: "lemonsqueezy", sentry: "sentry", woocommerce: "woocommerce",
}
for (const [sender, platform] of Object.entries(OF_TERN)) {
  VERIFIERS[sender] = async ({secret, ...sent}) => {
    const {WebhookVerificationService} = require("@hookflo/tern")
    const said = await WebhookVerificationService.verifyWithPlatformConfig(asRequest(sent), platform, secret)
    if (!said.isValid) throw new Error(said.error)
    return true
  }
}

// Others' code: validators for Nuxt, which here gets its request from the delivery, and its settings.
const OF_NUXT = {
  docusign: "docusign", dropbox: "dropbox", fourthwall: "fourthwall", heroku: "heroku", kick: "kick", vercel: "vercel",
}
const NUXT = {
  h3: `export const getRequestHeaders = (sent) => sent.headers, readRawBody = async (sent) => sent.text
       export const createError = (said) => new Error(said.message)`,
  "#imports": "export const useRuntimeConfig = (sent) => ({webhook: sent.settings})",
}
register(asModule(`
  const NUXT = ${JSON.stringify(NUXT)}, asModule = ${asModule}
  export const resolve = (name, context, next) =>
    name in NUXT ? {url: asModule(NUXT[name]), shortCircuit: true} : next(name, context)
`))
for (const [sender, platform] of Object.entries(OF_NUXT)) {
  VERIFIERS[sender] = async ({secret, ...sent}) => {
    const file = `node_modules/nuxt-webhook-validators/dist/runtime/server/lib/validators/${platform}.js`
    const [isValid] = Object.values(await import(pathToFileURL(file)))
    const settings = {[platform]: {secretKey: secret, appSecret: secret, publicKey: secret}}
    return isValid({...sent, settings})
  }
}

function asModule(text) {
  return `data:text/javascript,${encodeURIComponent(text)}`
}

// What a verifier would fetch, it gets from the delivery's own `keys`.
const fetchable = (sent) => Object.values(sent.keys)[0]

const asRequest = (sent) => new Request(sent.url, {method: "POST", headers: sent.headers, body: sent.body})

let keys = {}
globalThis.fetch = async (url) => new Response(keys[url], {status: url in keys ? 200 : 404})
require("node:https").get = (url, told) => {
  told(Object.assign(Readable.from([keys[url]]), {statusCode: 200}))
  return {on: () => undefined}
}

for await (const line of createInterface({input: process.stdin})) {
  const sent = JSON.parse(line)
  sent.body = Buffer.from(sent.body, "base64")
  sent.text = sent.body.toString()
  keys = sent.keys
  let answer
  try {
    answer = {taken: Boolean(await VERIFIERS[sent.sender](sent))}
  } catch (error) {
    answer = {taken: false, why: `${error.name}: ${error.message}`.slice(0, 300)}
  }
  process.stdout.write(JSON.stringify(answer) + "\n")
}
